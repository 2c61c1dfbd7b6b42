"""What the page says of the team."""

from __future__ import annotations

from artoo.web.words.said import Said, Spoken


class TeamWords(Spoken):
    """Words of the board, the agents and the letters."""

    board = Said("Board", "任务板")
    agents = Said("Agents", "代理")
    letters = Said("Letters to you", "给您的信")
    no_agents = Said(
        "There is no standing agent. Make one: artoo agent new NAME",
        "还没有常驻代理。创建一个：artoo agent new NAME",
    )
    no_tasks = Said("Nothing is on the board.", "任务板是空的。")
    no_letters = Said("No letters.", "没有信件。")
    who = Said("Whose", "归谁")
    trust = Said("Trust", "信任")
    pulses = Said("Latest pulses", "最近的心跳")
    unread = Said("Unread", "未读")
    write = Said("Write a letter", "写信")
    to = Said("To", "收信人")
    send = Said("Send", "发送")
    add_task = Said("Put a task on the board", "放一个任务到板上")
    serving = Said("The team works (process {process}).", "团队在工作（进程 {process}）。")
    not_serving = Said("Nobody works: artoo serve", "没有人在工作：artoo serve")
    approve = Said("Approve", "批准")
    reject = Said("Reject", "驳回")
    why = Said("Why", "理由")
    deal_with = Said("What you can do", "您可以")
    retry = Said("Let it be tried again", "再试一次")
    release = Said("Let it go on", "让它继续")
    cancel = Said("Cancel it", "取消")
    archive = Said("Archive it", "归档")
    mark_read = Said("Mark as read", "标为已读")
    read_already = Said("read", "已读")
    evidence = Said("Evidence", "依据")
    nothing_changes = Said("No file would change.", "不会改动任何文件。")
    asks_you = Said("Needs your yes", "需要您同意")
    cannot_show = Said("What it would change cannot be shown: {why}", "无法显示它会改动什么：{why}")
