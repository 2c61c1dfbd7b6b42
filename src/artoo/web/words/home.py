"""What the first page says, and the beginning and the end of every page."""

from __future__ import annotations

from artoo.web.words.said import Said, Spoken


class HomeWords(Spoken):
    """Words of the first page."""

    # everywhere
    now = Said("Now", "现在")
    tasks = Said("Tasks", "任务")
    team = Said("Team", "团队")
    memory = Said("Memory", "记忆")
    audit = Said("Audit", "审计")
    cost = Said("Cost", "费用")
    skip = Said("Skip to content", "跳到正文")
    other_language = Said("中文", "English")
    # home
    ask = Said("What do you want done?", "您想做什么？")
    ask_hint = Said(
        "Plain words will do. artoo plans it, does it in a copy, checks it, and asks before it takes effect.",
        "用平常的话说就行。artoo 会先规划，在副本里执行，逐项检查，生效之前先问您。",
    )
    project = Said("In the directory", "工作目录")
    apply_mode = Said("Takes effect unasked", "可直接生效")
    apply_new = Said("new files", "新文件")
    apply_edits = Said("edits too", "也包括修改")
    apply_ask = Said("nothing", "都要先问")
    start = Said("Start", "开始")
    waits = Said("Waits for you", "等您决定")
    nothing_yet = Said("Nothing has been done here yet", "这里还没有做过任何任务")
    nothing_yet_how = Said(
        "Say above what you want done, or type in a terminal:",
        "在上面写下您的请求，或在终端输入：",
    )
    in_terminal = Said(
        "Whatever is started in a terminal with this home is seen here while it runs.",
        "用同一主目录在终端启动的任务，也会在这里实时显示。",
    )
    request = Said("Request", "请求")
    state = Said("State", "状态")
    when = Said("Started", "开始时间")
    took = Said("Took", "用时")
    changes_wait = Said("changes wait for your yes", "有更改等您同意")
    older = Said(
        "Only the latest {count} are listed; the others: artoo log list -n 1000",
        "只列出最近 {count} 个；其余请用：artoo log list -n 1000",
    )
    offline_here = Said(
        "The connection is lost; it goes on as soon as it is back.",
        "连接已断开；恢复后会接着显示。",
    )
    at_work = Said("At work", "正在进行")
    board_waits = Said("on the board", "任务板")
    team_unread = Said("board and letters cannot be read", "看板和信件无法读取")
    letters_wait = Said("letters to you that you have not read: {count}", "您还没有读的信：{count}")
    # states
    running = Said("running", "运行中")
    not_ended = Said("stopped early", "中途停止")
    accept = Said("done", "完成")
    success = Said("done, with gaps", "完成，有缺口")
    abandon = Said("gave up", "已放弃")
    interrupted = Said("interrupted", "已中断")
    # errors
    not_found = Said("There is nothing at this address.", "这个地址没有内容。")
    refused = Said("That was not done", "没有执行")
    back = Said("Back", "返回")
