"""What an answer claims, clause by clause: done, failed, absent, a fact, or mere talk. English, Chinese, mixed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from artoo.loops.fast.evidence.effects import WRITES, Effect
from artoo.loops.fast.evidence.names import names_in, without_names
from artoo.loops.fast.evidence.quantity import Quantity, quantities
from artoo.loops.fast.evidence.trouble import Cause, causes_in

E = Effect
CLAIM_CHARACTERS = 8_000
"""How much of an answer is read."""
MOST_CLAUSES = 150
MOST_FIGURES = 40
"""Figures of one clause that are looked for."""


class Stance(StrEnum):
    """What a clause asserts."""

    DONE = "done"
    FAILED = "failed"
    ABSENT = "absent"
    FACT = "fact"
    TALK = "talk"


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement. `effects`: what it says was done (or not done), any of which would make it true.

    `universal`: all, every, 全部. `hedged`: at least, so far. `cause`: reasons that it gives for a failure.
    """

    text: str
    stance: Stance
    effects: tuple[frozenset[Effect], ...] = ()
    names: tuple[str, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    universal: bool = False
    hedged: bool = False
    earlier: bool = False
    attributed: bool = False
    machine: bool = False
    causes: frozenset[Cause] = frozenset()


_ANY_WRITE = WRITES | {
    E.COPY,
    E.MOVE,
    E.ARCHIVE,
    E.EXTRACT,
    E.DOWNLOAD,
    E.CLONE,
    E.BUILD,
    E.RESTORE,
    E.MERGE,
    E.COMMIT,
}
_ANY_EDIT = _ANY_WRITE | {
    E.DELETE,
    E.PERMISSION,
    E.INSTALL,
    E.UNINSTALL,
    E.MIGRATE,
    E.DEPLOY,
    E.START,
    E.STOP,
    E.SCHEDULE,
}

_DONE_WORDS: tuple[tuple[str, str, frozenset[Effect]], ...] = (
    ("deleted|erased|wiped|trashed|purged|unlinked", "删除|删掉|删了|清除", frozenset({E.DELETE})),
    ("removed|dropped|pruned", "移除|去掉", frozenset({E.DELETE, E.UNINSTALL, E.EDIT, E.STOP})),
    ("emptied|cleared|cleaned(?: up)?|truncated", "清空|清理", frozenset({E.DELETE, E.EDIT})),
    ("moved|renamed|relocated", "移动|移到|移至|重命名|改名", frozenset({E.MOVE})),
    (
        "copied|duplicated|mirrored|cloned|synced|synchroni[sz]ed",
        "复制|拷贝|同步|克隆",
        frozenset({E.COPY, E.UPLOAD, E.CLONE, E.CREATE, E.DOWNLOAD}),
    ),
    ("backed up", "备份", frozenset({E.COPY, E.ARCHIVE, E.UPLOAD, E.COMMIT, E.CREATE})),
    (
        "created|generated|written|wrote|saved|exported|produced|rendered|made(?= (?:a|an"
        "|the|it|\\S+\\.\\w))|added|appended|inserted|recorded",
        "创建|新建|建立|生成|写入|写好|写到|保存|存入|导出|添加|追加|新增",
        _ANY_WRITE | {E.SCHEDULE, E.DEPLOY, E.INSTALL},
    ),
    (
        "changed|edited|updated|modified|replaced|fixed|repaired|patched|rewritten|rewrote"
        "|refactored|reformatted|configured|adjusted|corrected|converted|resized|resolved"
        "|deduplicated|applied|(?:was|were|been|have|has|'ve|i|we) set",
        "修改|更改|更新|编辑|替换|修复|修正|改成|改为|改好|配置|设置|转换|调整|应用",
        _ANY_EDIT,
    ),
    ("installed|upgraded", "安装|装好|升级", frozenset({E.INSTALL})),
    ("uninstalled", "卸载", frozenset({E.UNINSTALL})),
    ("committed", "", frozenset({E.COMMIT})),
    ("", "提交", frozenset({E.COMMIT, E.SEND, E.PUSH, E.UPLOAD})),
    ("pushed", "推送", frozenset({E.PUSH})),
    ("published|released", "发布", frozenset({E.PUSH, E.DEPLOY, E.UPLOAD, E.SEND})),
    ("deployed|rolled out|shipped|(?:went|is now|are now|is|now) live", "部署|上线", frozenset({E.DEPLOY})),
    (
        "sent|e-?mailed|mailed|notified|messaged|replied|submitted|posted|forwarded|delivered|ordered|booked|paid",
        "发送|发给|发出|寄出|寄给|通知了|已通知|回复|转发|发了|预订|支付",
        frozenset({E.SEND, E.UPLOAD, E.SCHEDULE}),
    ),
    ("downloaded|pulled", "下载|拉取", frozenset({E.DOWNLOAD, E.CLONE, E.INSTALL})),
    ("uploaded", "上传", frozenset({E.UPLOAD, E.SEND, E.PUSH})),
    ("built|compiled|packaged|bundled", "构建|编译|打包", frozenset({E.BUILD, E.ARCHIVE})),
    (
        "tested|pass(?:e[sd])?|passing",
        "测试(?:都|全部|已)?(?:通过|成功)|通过",
        frozenset({E.TEST, E.LINT}),
    ),
    ("linted|type-checked|lint-(?:clean|free)", "", frozenset({E.LINT, E.TEST})),
    (
        "started|restarted|launched|booted|enabled|activated|reloaded|relaunched",
        "启动|重启|启用|开启|激活",
        frozenset({E.START}),
    ),
    (
        "stopped|killed|terminated|shut down|disabled|halted|deactivated",
        "停止|停掉|关闭|终止|杀死|停用|禁用",
        frozenset({E.STOP}),
    ),
    (
        "chmodded|chowned|made (?:it |\\S+ )?(?:executable|read-only|writable|readable|private|public)",
        "",
        frozenset({E.PERMISSION}),
    ),
    ("archived|compressed|zipped|tarred", "压缩|归档", frozenset({E.ARCHIVE, E.MOVE})),
    ("unpacked|unzipped|decompressed|untarred", "解压", frozenset({E.EXTRACT})),
    ("merged|rebased|combined", "合并", frozenset({E.MERGE, E.CREATE, E.EDIT})),
    ("scheduled", "预约|安排", frozenset({E.SCHEDULE, E.EDIT, E.CREATE})),
    ("migrated", "迁移", frozenset({E.MIGRATE, E.MOVE})),
    (
        "restored|recovered|rolled back|reverted|undone",
        "恢复|还原|回滚|撤销",
        frozenset({E.RESTORE, E.COPY, E.MOVE, E.EXTRACT, E.EDIT}),
    ),
)
_DONE_EN = tuple((re.compile(rf"\b(?:{en})\b", re.I), effects) for en, _, effects in _DONE_WORDS if en)
_DONE_STEMS = ("ed", "sent", "built", "wr", "made", "pass", "set", " live", "paid", "shut down", "lint-", "undone")
"""One of these is in whatever says in English that something was done; most clauses have none, and no verb is
looked for in them."""
_DONE = (*_DONE_EN, *((re.compile(f"(?:{zh})"), effects) for _, zh, effects in _DONE_WORDS if zh))
_NOUNS: tuple[tuple[re.Pattern[str], frozenset[Effect]], ...] = (
    (re.compile(r"\b(?:deletion|removal)\b|\bdelet(?:e|ing)\b", re.I), frozenset({E.DELETE})),
    (re.compile(r"\b(?:deployment|deploy|rollout|release)\b|部署|上线", re.I), frozenset({E.DEPLOY})),
    (re.compile(r"\b(?:build|compilation|compile|building)\b|构建|编译", re.I), frozenset({E.BUILD})),
    (re.compile(r"\b(?:tests?|test suite|test run|specs?)\b|测试|用例", re.I), frozenset({E.TEST})),
    (re.compile(r"\b(?:lint(?:er|ing)?|type ?check(?:s|ing)?)\b", re.I), frozenset({E.LINT, E.TEST})),
    (re.compile(r"\b(?:installation|install|installing|upgrade)\b|安装|升级", re.I), frozenset({E.INSTALL})),
    (re.compile(r"\b(?:backup|back-up)\b|备份", re.I), frozenset({E.COPY, E.ARCHIVE, E.UPLOAD, E.CREATE})),
    (re.compile(r"\b(?:upload|uploading)\b|上传", re.I), frozenset({E.UPLOAD, E.SEND})),
    (re.compile(r"\b(?:download|downloading)\b|下载", re.I), frozenset({E.DOWNLOAD, E.CLONE})),
    (re.compile(r"\b(?:migration)\b|迁移", re.I), frozenset({E.MIGRATE, E.MOVE})),
    (re.compile(r"\b(?:push)\b|推送", re.I), frozenset({E.PUSH})),
    (re.compile(r"\b(?:commit)\b", re.I), frozenset({E.COMMIT})),
    (re.compile(r"\b(?:e-?mail|message|mail)\b.*\b(?:sent|delivered)\b|发送", re.I), frozenset({E.SEND})),
    (re.compile(r"\b(?:copy|copying)\b|复制", re.I), frozenset({E.COPY, E.CREATE})),
    (
        re.compile(r"\b(?:transfer|sync|synchroni[sz]ation)\b|同步|传输", re.I),
        frozenset({E.COPY, E.UPLOAD, E.DOWNLOAD, E.SEND}),
    ),
    (re.compile(r"\b(?:conversion|export|import)\b|转换|导出|导入", re.I), _ANY_WRITE),
    (re.compile(r"\b(?:merge|rebase)\b|合并", re.I), frozenset({E.MERGE})),
    (re.compile(r"\brestart\b|重启|启动", re.I), frozenset({E.START})),
)
_SUCCESS = re.compile(
    r"\b(?:succeed(?:ed|s)?|successful(?:ly)?|complet(?:e|ed|es|ely done)|finished|done"
    r"|(?:is|are|was|were|all) (?:ok|okay|fine|good|green|clean|complete|ready)|passe[sd]"
    r"|passed|passing|worked|works|went (?:well|fine|through)|no (?:errors?|failures?"
    r"|problems?|issues?)|without (?:any )?(?:errors?|failures?|problems?|issues?)|(?:0"
    r"|zero) (?:errors?|failures?|failed)|none (?:of (?:them|the \w+) )?(?:have |has )?failed|all set"
    r"|accomplished)\b|没有一?[个项条].{0,6}失败"
    r"|成功|完成|完毕|搞定|通过|没有(?:任何)?(?:错误|问题|失败)|无(?:错误|误)|一切正常|正常完成|办好|做好|弄好",
    re.I,
)
_FAILURE = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures|ing)?|could ?n[o']t|could not|can ?not|can't|un(?:able"
    r"|successful|finished|completed)|not able|tim(?:ed|e)[- ]?out|interrupted|cancell?ed"
    r"|aborted|den(?:ied|ies)|refused|declined|rejected|withheld|crashed|incomplete|gave"
    r" up|broke(?:n)?|errored|(?:an|with|of|the following|this|some|several|\d+) errors?"
    r"|error (?:occurred|while|when|in|reading|message|:)|errors? (?:occurred|were|was)"
    r"|not (?:yet |been |fully |all )*(?:\w+ed|done|complete|sent|built|written|run|made"
    r"|possible|available|supported|permitted|allowed|successful|finish|take effect)|did"
    r" not|didn't|(?:was|were|has|have|had|is|are|does|do)(?:n't| not)|never|stopped (?:at"
    r"|before|early|after)|skipped|killed (?:at|before|after|by)|was killed|ran out of"
    r"|out of memory|no permission|permission denied|(?:left|remains?|remained|stays?"
    r"|stayed|kept|is|was|were) (?:unchanged|untouched|intact|as (?:it|they) (?:is|was"
    r"|are|were))|(?:killed|stopped|terminated) (?:at|before|after|by|early|while|when"
    r"|during)|nothing was (?:\w+ed|done|sent)|no (?:changes?|files?|messages?|e-?mails?)"
    r" (?:was|were|has been|have been) (?:\w+ed|made|sent))\b"
    r"|失败|保持不变|没有变化|未变|原样|未能|无法|没能|没有(?:成功|完成|执行|运行|删除|修改|创建|生成|写入|部署|发送|安装|通过|更改|移动|复制"
    r"|上传|下载|提交|推送|被)|没(?:删|改|发|写|装|跑|做|完成|成功|通过)|尚未|还没|未(?:完成|成功|删除|通过|执行|修改|创建|生成|部署"
    r"|发送|安装|被|经|提交|推送|更改|上传|下载|复制|移动|写入|运行)|超时|中断|被拒绝|拒绝|出错|报错|错误|取消|不能|不成功|权限不足|没有权限"
    r"|崩溃|被杀|终止于",
    re.I,
)
_NO_TROUBLE = re.compile(
    r"\b(?:no|zero|0|without(?: any)?|free of) (?:\w+ )?(?:errors?|failures?|problems?"
    r"|issues?|failed tests?|failing tests?)\b|\b0 (?:tests? )?failed\b|\berror-free\b"
    r"|\bno (?:tests?|checks?) (?:have |has )?fail(?:ed|s)?\b|\bnothing failed\b"
    r"|\bnone (?:of (?:them|the \w+) )?(?:have |has )?(?:fail(?:ed|s)?|skipped)\b"
    r"|没有一?[个项条].{0,6}失败|没有(?:任何)?(?:错误"
    r"|问题|失败|报错)|无(?:错误|失败|报错)|0 ?个?(?:失败|错误)|零(?:错误|失败)",
    re.I,
)
_LOOKED_INTO = re.compile(
    r"\b(?:contains?|has|have|shows?|found|finds|there (?:are|is|were|was)|lists?|in the log|log)\b|[里中]|日志",
    re.I,
)
_RECOVERED = re.compile(
    r"\b(?:despite|after|although|though|even though|in spite of|previously|earlier|at first|initially|once)\b.*",
    re.I,
)
_ABSENT = re.compile(
    r"\b(?:(?:there (?:is|are|was|were)|has|have|contains?|found|find|finds|see|returned"
    r"|matched|matches|with|had) (?:no|zero|0)\b|^(?:no|zero|0) (?!longer|one should|problem"
    r"|need)[\w'\"`⟨⟩.*]|(?:do|does|did) ?(?:n't|n’t| not) (?:exist|contain|have|match"
    r"|appear|include|list|occur|find|seem to (?:exist|contain))|could ?(?:n't| not) (?:be"
    r" )?(?:find|found|locate[d]?)|(?:is|are|was|were)(?:n't| not) (?:any|found|present"
    r"|there|in\b|listed|available|a \w+ (?:in|named|called))|not (?:found|present|listed)\b"
    r"|nothing (?:was |is )?(?:found|matches|matched|there)|none (?:of|was|were|is|are"
    r"|exist|found|match)|no longer exists?|(?:is|are|was|were|seems?(?: to be)?) (?:empty"
    r"|missing|absent|nonexistent)|no such|there(?:'s| is)n't|(?:is|are|was|were)(?: currently"
    r"| still)?(?: not|n't|n’t) (?:currently |yet )?(?:running|active|listening|reachable"
    r"|enabled|installed|open|up\b|online|connected|mounted|present|alive|in use)|(?:is"
    r"|are|was|were)(?: currently| still)?(?: not|n't|n’t) (?:currently |yet )?(?:running"
    r"|active|listening|reachable|enabled|installed|open|up\b|online|connected|mounted"
    r"|present|alive|in use)|^\W*(?:nothing|nobody|no one) (?:is|was|has|listens|runs"
    r"|matches|uses)|never (?:appears|occurs|mentioned)|without any match|unable to (?:find"
    r"|locate)|neither)"
    r"|不存在|(?:没有|未|没)(?:在)?(?:运行|启用|安装|启动|监听|连接)(?!成功|了|完成)$|没有(?:找到|发现|任何|匹配|包含|名为|叫"
    r"|这个|该|此|出现|查到|搜到|符合|含|\w*的?(?:文件|结果|记录|目录|行))|未(?:找到|发现|检测到|匹配|查到|搜索到|包含)|找不到|查无"
    r"|搜不到|无匹配|无结果|为空|是空的|不包含|不含|没有.{0,30}(?:文件|结果|匹配|记录|条目|目录|进程)|没找到|没发现",
    re.I,
)
_TALK = re.compile(
    r"\?|？|^\s*(?:hello|hi|hey|thanks|thank you|you're welcome|sorry|welcome|sure|certainly"
    r"|of course)\b|^\s*(?:ok(?:ay)?|yes|no)\s*(?:[,.!]|$)|^\s*(?:please\b|let me|let's"
    r"|here (?:is|are) (?:how|what you)|note that you|you (?:can|could|may|might|should)"
    r"|to \w+ [^,]+, (?:use|run|type|you|call)|use |run |try |if |would |could you|should"
    r" |do you|i (?:can|could|will|would|shall|may|am going to|suggest|recommend)|i'll"
    r"|we (?:can|could|will|should)|next,? )"
    r"|^\s*(?:你好|您好|谢谢|请|如果|可以|建议|如需|是否|需要我|我会|我将|我可以|你可以|您可以|好的|不客气|再见|接下来)",
    re.I,
)
_NEGATOR = re.compile(
    r"(?:n't|n’t|\bnot\b|\bnever\b|\bfail(?:ed|s|ure)? to(?: be)?\b|\bunable to\b|\bwithout\b"
    r"|\bneither\b|\bnor\b|\bcannot\b|\bnothing (?:was|has been|is)\b|\bnone (?:of|was"
    r"|were)\b|^\s*no\b|\bno \w+ (?:was|were|has been|have been|is|are)\b|没有?|未|无法|不能"
    r"|没能|不会|失败|拒绝|并非|尚未)[^,;，；]*$",
    re.I,
)
_UNREAL = re.compile(
    r"\b(?:will|would|can|could|may|might|should|must|shall|to|if|when|once|needs? to"
    r"|wants? to|going to|try to|about to|ready to|before|until|unless|whether|how)\b(?:"
    r" \w+)?(?: (?:be|get|have|being))?\s*$|(?:将|要|可以|会|能|应该|需要|如果|请|想|打算|准备|是否|尝试|试图"
    r"|用于|用来)[^,，。了已]{0,6}$",
    re.I,
)
_CUT_OFF = re.compile(r"(?:killed|stopped|terminated) (?:at|before|after|by|early|while|when|during)\b", re.I)
_ATTRIBUTE = re.compile(
    r"^\s*(?:(?:on|at|in|since|before|after|from|by)\s+)?(?:(?:19|20)\d{2}\b|\d{1,2}[:/.-]\d|\w+day\b"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|\d+ (?:seconds?|minutes?|hours?"
    r"|days?|weeks?|months?|years?) ago"
    r"|yesterday|today|last|recently)|^\s*by [A-Z]",
    re.I,
)
_ATTRIBUTE_LEAD = re.compile(
    r"\b(?:last|recently|most recent(?:ly)?|newly|first|latest|the|a|an|any|which|that) $"
    r"|(?:最近|最后|上次)(?:一次)?$",
    re.I,
)
_STATE = re.compile(r"\b(?:is|are|be|isn't|aren't) (?:\w+ly |already |currently |still |now )?$", re.I)
_STATE_EFFECTS = frozenset({E.INSTALL, E.START, E.STOP, E.MERGE, E.PERMISSION})
_TREE_STATE = re.compile(r"(?:modified|changed|deleted|added|renamed|staged)$", re.I)
_ATTRIBUTED = re.compile(
    r"\b(?:according to|(?:says?|states?|reads?|reports?|tells? \w+|asks? \w+|announces?"
    r"|claims?|mentions?|shows?|indicates?|lists?|contains?|describes?)\b(?: that|:| the"
    r" (?:line|text|words?))?|the (?:log|file|page|document|readme|e-?mail|note|article"
    r"|report)'s)|显示|写着|写道|提到|声称|记录(?:了|着|显示)|根据|据.{1,20}(?:称|说)|里说|中说|内容(?:是|为)",
    re.I,
)
_UNIVERSAL = re.compile(
    r"\b(?:all|every(?:thing|one)?|each|entire(?:ly)?|whole|complete(?:ly)?|fully|both"
    r"|only|in total|altogether|any)\b|全部|所有|都|每个|每一|整个|全都|一共|总共|仅|只有|任何|均",
    re.I,
)
_HEDGED = re.compile(
    r"\b(?:at least|so far|up to now|until then|until it|before (?:it|the)|partial(?:ly)?"
    r"|incomplete|truncated|cut off|the first|the last|shown|visible|of the (?:part|output)"
    r" (?:that|I)|may be|might be|possibly|not (?:all|complete)|some of)\b|至少|部分|截断|到目前为止"
    r"|不完整|前\s?\d+|最后\s?\d+|可能",
    re.I,
)
_EARLIER = re.compile(
    r"\b(?:had|before|previous(?:ly)?|original(?:ly)?|used to|formerly|initially|at first"
    r"|earlier|first run|was)\b|原来|原本|之前|以前|曾|修改前|最初|本来",
    re.I,
)
_MACHINE = re.compile(
    r"\b(?:your|this|the|current|my|that|these|those|both|\d+|no|all|any|each)\s+(?:\w+"
    r" ){0,2}(?:files?|folders?|director(?:y|ies)|disks?|drives?|partition|process(?:es)?"
    r"|servers?|services?|logs?|repo(?:sitory)?|databases?|packages?|ports?|memory|cpu"
    r"|machine|computer|systems?|tests?|builds?|deployments?|scripts?|projects?|workspace"
    r"|branch(?:es)?|commits?|containers?|hosts?|printers?|configs?|configuration|desktop"
    r"|downloads|inbox|e-?mails?|calendars?|rows?|lines?|website|backup|uptime|kernel"
    r"|invoices?|documents?|photos?|images?|table|csv|downloads?)\b"
    r"|\bin (?:this|the current|your) (?:directory|folder|project|repo)|\bI (?:checked"
    r"|looked|searched|ran|opened|scanned|listed|read|counted|verified|inspected|examined"
    r"|found)\b"
    r"|文件|目录|磁盘|硬盘|进程|服务器|服务|日志|仓库|数据库|端口|内存|脚本|测试|构建|部署|项目|电脑|系统|机器|行(?:代码|数据)?\b|邮件"
    r"|日历|桌面|分支|容器|主机|配置|(?:我)?(?:检查|查看|搜索|运行|读取|统计|扫描)了",
    re.I,
)
_PREDICATE = re.compile(
    r"\d|\b(?:is|are|was|were|has|have|had|be|been|does|do|did|can|could|will|would|may"
    r"|contains?|shows?|exists?|found|failed|passed|succeeds?|works|pass(?:es)?|fails?"
    r"|compiles|builds|reports|\w{3,}ed|sent|built|ran|wrote|made|went|took|says|lists?"
    r"|matches|needs?|runs?|works?|gave|got|set|left|kept|nothing|none|no|zero|both|two"
    r"|three|four|five|six|seven|eight|nine|ten)\b|n't|[了是有没未已为被无]|成功|失败|完成|通过|存在|包含|共"
    r"|正在|超时|拒绝",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[.!?])$|[。！？；;\n]+")
_CLAUSE = re.compile(
    r"(?<!\d),(?!\d)|, (?=\D)|(?<=\d), (?=\d*\D)|，|:\s+|：|\s+[-–—]\s+|——|\s+(?:and then"
    r"|and|but|while|whereas|then|yet|so|plus)\s+|(?:但是|然而|不过|并且|而且|同时|随后|然后|而|但)",
    re.I,
)
_SOME_ACT = re.compile(
    r"\b(?:was|were|has been|have been|I|we|I've|we've) (?:all |\w+ly )?(?!exceeded|reached"
    r"|named|called|based|located|used|born|needed|required|unchanged|founded|related"
    r"|expected|supposed|checked|searched|looked|listed|counted|found|noticed|observed)\w{3,}ed\b",
    re.I,
)
_ATTRIBUTE_ACT = re.compile(
    r"\b(?:last|first|recently|originally) \w+ed\b|\w+ed (?:on|at|in|by) (?:[A-Z\d]|line"
    r"|column)|\b(?:is|are) \w+ed\b"
)
_RELATIVE = re.compile(r"\s*(?:who|which|whose|where)\b", re.I)
_DATE = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w* \d{1,2}, \d{4}", re.I)
_REASON = re.compile(r"\b(?:because|since|as|due to|owing to|for lack of)\b|因为|由于", re.I)
_MARKER = re.compile(r"^\s*(?:[-*•]\s+|\d{1,3}[.)、]\s+|#{1,6}\s+|>\s+|\|)+")
_FENCE = re.compile(r"^\s*```.*$", re.M)


def clauses_of(claim: str) -> tuple[Clause, ...]:
    """The statements of an answer, in order. Questions, offers and greetings come as `talk`."""
    text = _FENCE.sub("", claim[:CLAIM_CHARACTERS]).replace("’", "'").replace("**", "")
    found: list[Clause] = []
    for line in text.splitlines():
        for sentence in _split(_SENTENCE, _MARKER.sub("", line)):
            found += [_clause(part) for part in _statements(sentence)]
    return tuple(found[:MOST_CLAUSES])


def _split(pattern: re.Pattern[str], text: str) -> list[str]:
    """Splits a text, but never inside a name or a quotation."""
    masked = text
    for name in names_in(text):
        masked = masked.replace(name, "x" * len(name))
    masked = _DATE.sub(lambda match: "x" * len(match[0]), masked)
    parts: list[str] = []
    start = 0
    for match in pattern.finditer(masked):
        parts.append(text[start : match.start()])
        start = match.end()
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip(" \t.,。，")]


def _statements(sentence: str) -> list[str]:
    """Splits at commas and conjunctions; a part without a predicate belongs to its neighbour."""
    reason = _REASON.search(sentence)
    tail = sentence[reason.start() :] if reason and reason.start() > 0 else ""
    parts = _split(_CLAUSE, sentence.removesuffix(tail) if tail else sentence)
    joined: list[str] = []
    waiting = ""
    for part in parts:
        if joined and not waiting and _RELATIVE.match(part):
            joined[-1] = f"{joined[-1]}, {part}"
        elif _PREDICATE.search(without_names(part)):
            joined.append(f"{waiting}, {part}" if waiting else part)
            waiting = ""
        elif joined and not waiting:
            joined[-1] = f"{joined[-1]}, {part}"
        else:
            waiting = f"{waiting}, {part}" if waiting else part
    if waiting:
        joined.append(waiting)
    if tail and (_FAILURE.search(tail) or _ABSENT.search(tail) or causes_in(tail) or not _PREDICATE.search(tail)):
        joined[-1:] = [f"{joined[-1]} {tail}" if joined else tail]
    elif tail:
        joined.append(_REASON.sub("", tail, count=1).strip())
    return joined


def _clause(text: str) -> Clause:
    bare = without_names(text)
    reason = _REASON.search(bare)
    main = bare[: reason.start()] if reason and reason.start() > 0 else bare
    done, denied = _effects_in(main)
    stance, effects = _stance(main, bare, done, denied)
    names = names_in(text)
    return Clause(
        text=text,
        stance=stance,
        effects=effects,
        names=names,
        quantities=quantities(bare)[:MOST_FIGURES],
        universal=_UNIVERSAL.search(bare) is not None,
        hedged=_HEDGED.search(bare) is not None,
        earlier=_EARLIER.search(bare) is not None,
        attributed=_ATTRIBUTED.search(bare) is not None,
        machine=_MACHINE.search(bare) is not None
        or bool(done or denied)
        or any("." in name or "/" in name for name in names),
        causes=causes_in(bare) if stance in (Stance.FAILED, Stance.ABSENT) else frozenset(),
    )


def _effects_in(text: str) -> tuple[tuple[frozenset[Effect], ...], tuple[frozenset[Effect], ...]]:
    """What the clause says was done, and what it says was not."""
    if text.isascii() and not any(map(text.lower().__contains__, _DONE_STEMS)):
        return (), ()
    done: list[frozenset[Effect]] = []
    denied: list[frozenset[Effect]] = []
    for pattern, effects in _DONE_EN if text.isascii() else _DONE:
        for match in pattern.finditer(text):
            before, after = text[: match.start()], text[match.end() :]
            if _UNREAL.search(before) and not _NEGATOR.search(before):
                continue
            if (
                _CUT_OFF.match(match[0] + after)
                or _NEGATOR.search(before)
                or re.match(r"(?:失败|未成功|不成功|被拒|超时|出错|中断)", after)
            ):
                denied.append(effects)
            elif _is_achieved(match[0], before, after, effects):
                done.append(effects)
    return tuple(done), tuple(denied)


def _is_achieved(word: str, before: str, after: str, effects: frozenset[Effect]) -> bool:
    """Whether the verb reports an act, and not an attribute, a state, a plan or a noun."""
    if not word.isascii():
        lead = re.search(r"(?:已|已经|成功|都|全部|被|均|我|刚刚|并|后|把.{1,20}|将.{1,20})\s*$", before)
        tail = re.match(r"\s*(?:了|成功|完成|完毕|好|过|到|至|为|成|通过|⟨⟩|\w+)", after)
        if word in ("通过", "设置", "配置", "更新") and not lead and not re.match(r"了|成功|完成|好", after):
            return word == "通过" and not re.match(r".*(?:命令|方式|方法)", after)
        finished = re.match(r"\s*(?:了|成功|完成|完毕|好了|好)", after)
        return bool(
            lead
            or finished
            or (tail and re.match(r"\s*(?:了)", after))
            or re.search(r"了\s*$", word)
            or after.strip("。 .!！") == ""
        )
    if _ATTRIBUTE.match(after) or _ATTRIBUTE_LEAD.search(before):
        return bool(re.search(r"\bI\b|\bwe\b", before)) and not _ATTRIBUTE_LEAD.search(before)
    if _STATE.search(before) and (effects <= _STATE_EFFECTS or (_TREE_STATE.match(word) and quantities(before))):
        return False
    if (
        _TREE_STATE.match(word)
        and re.search(r"\b(?:\d+|one|two|three|four|five|several) (?:files?|lines?) $", before, re.I)
        and word.lower() in ("changed", "modified")
    ):
        return False
    return not (re.match(r"pass", word, re.I) and re.match(r"\s*(?:as|to|by|through|the argument)\b", after))


def _stance(
    main: str, whole: str, done: tuple[frozenset[Effect], ...], denied: tuple[frozenset[Effect], ...]
) -> tuple[Stance, tuple[frozenset[Effect], ...]]:
    if done:
        return (Stance.FACT if _counted_outcome(main, done) else Stance.DONE), done
    if _TALK.search(main):
        return Stance.TALK, ()
    if denied:
        return Stance.FAILED, denied
    untroubled, troubles_denied = _NO_TROUBLE.subn(" ⊨ ", main)
    failure = _FAILURE.search(_RECOVERED.sub("", untroubled))
    if _ABSENT.search(untroubled) and not (
        failure and (_REASON.search(whole) or causes_in(whole) - {Cause.ABSENT})
    ):
        return Stance.ABSENT, ()
    if troubles_denied and _LOOKED_INTO.search(main):
        return Stance.ABSENT, ()
    if failure:
        return Stance.FAILED, _named_acts(main)
    if _SUCCESS.search(main) or _SOME_ACT.search(_ATTRIBUTE_ACT.sub(" ", main)):
        return Stance.DONE, _named_acts(main)
    return Stance.FACT, ()


def _named_acts(text: str) -> tuple[frozenset[Effect], ...]:
    """Acts that a clause names by nouns: `the deletion failed`."""
    return tuple(effects for pattern, effects in _NOUNS if pattern.search(text))


def _counted_outcome(text: str, done: tuple[frozenset[Effect], ...]) -> bool:
    """`12 passed`, `3 of 5 copied`: a figure about an outcome, not a claim that everything came out well."""
    if re.search(r"\d+ ?(?:of|/|out of|个中的?) ?(?:the )?\d+", text):
        return True
    if _UNIVERSAL.search(text):
        return False
    verdict = any(E.TEST in effects for effects in done)
    return (verdict and bool(quantities(text))) or re.search(
        r"\d+ ?(?:of|/|out of|个中的?) ?(?:the )?\d+", text
    ) is not None
